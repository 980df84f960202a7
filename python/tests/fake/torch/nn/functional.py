from ..matrices import linear  # noqa: F401
