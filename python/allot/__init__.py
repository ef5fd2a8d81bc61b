"""Asks a running allotd what its GPUs and tenants are, and changes what tenants may have.

Units are in names: memory in bytes, shares in percent of one GPU's time, times in seconds. Failures are
raised as allot.Error. A Client is for one thread at a time; a List never changes.
"""

from ._client import Client
from ._library import Error, version
from ._list import Device, List, Share, Tenant

__all__ = ["Client", "Device", "Error", "List", "Share", "Tenant", "version"]
