"""Files that are there as a whole or not at all."""

import pytest

from experiments.measure.files import write_whole


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "table.csv"
    assert write_whole(path, lambda stream: stream.write(b"old")) == path

    def fails(stream):
        stream.write(b"ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(path, fails)
    assert caught.value.filename == str(path)
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_named_by_the_file_that_was_meant(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "absent" / "table.csv", lambda stream: stream.write(b""))
    assert caught.value.filename == str(tmp_path / "absent" / "table.csv")
