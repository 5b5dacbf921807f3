"""All attacks, one after the other, and a table of what came of them. See docs/attacks.md."""

import sys
import time

import averaging
import differencing
import leaked_keyed_file
import low_bits
import membership
import timing
from command import AS_PROMISED, Settings, arguments, perform, print_table

ATTACKS = (averaging, differencing, low_bits, membership, timing, leaked_keyed_file)


def main(words=None):
    """The status: 0 if all is as promised, else 1."""
    given, begin = arguments(__doc__).parse_args(words), time.perf_counter()
    findings = [perform(attack, given.out, Settings(given.seed, given.quick)) for attack in ATTACKS]
    print_table("All attacks", ["attack", "where the mistake is made", "dpoutlier", "permitted", "verdict"], findings)
    print(f"\n  pictures in {given.out}, {time.perf_counter() - begin:.0f} s")
    return int(any(finding.verdict != AS_PROMISED for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
