"""The name (id) by which a server and its clients know a model."""

import re

MODEL_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
