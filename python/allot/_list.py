"""What there was at one moment, as plain objects."""

import ctypes
import json as _json
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from ._library import library


@dataclass(frozen=True)
class Device:
    """A GPU, or a MIG instance."""

    index: int  # what changes and shares name it by
    uuid: str
    name: str
    memory_bytes: int  # what can be held on it, the driver's own reserve left out
    memory_used_bytes: Optional[int]  # by all processes; None: the driver does not say
    busy_pct: float  # GPU time charged to all tenants in the last second
    promised_bytes: int
    promised_cores_pct: float
    fault: Optional[str]  # None: it is healthy
    is_cordoned: bool  # takes no new tenants


@dataclass(frozen=True)
class Share:
    """What a tenant has of one device."""

    device_index: int
    memory_quota_bytes: int
    memory_is_given: bool  # False: the quota is what others were not promised
    memory_used_bytes: int
    cores_pct: float  # guaranteed; 0: nothing is
    cores_limit_pct: float  # may be reached when others leave time unused, as asked for
    cores_limit_now_pct: float  # as in force, lent time included
    got_1s_pct: float
    got_60s_pct: float
    waited_s: float  # thread time held back, since the tenant was made
    denied: int  # allocations refused


@dataclass(frozen=True)
class Tenant:
    """The processes of one container, or of one `allot run`."""

    name: str
    id: str  # unlike a name never used again
    state: str  # "running", "idle", "waiting", "paused", ...: docs/reference/protocol.md
    uid: int
    priority: int
    shares: Tuple[Share, ...]  # one a device that it may use, in its order


@dataclass(frozen=True)
class List:
    """All devices and tenants, of one moment."""

    devices: Tuple[Device, ...]
    tenants: Tuple[Tenant, ...]
    json: Dict[str, Any]  # all that the daemon said: `allot ps --json`

    def tenant(self, name: str) -> Tenant:
        """The tenant of that name or id; KeyError where there is none."""
        for tenant in self.tenants:
            if name in (tenant.name, tenant.id):
                return tenant
        raise KeyError(name)


def _get(kind: str, handle: int, field: str) -> Any:
    value = getattr(library(), f"allot_{kind}_{field}")(handle)
    return value.decode() if isinstance(value, bytes) else value


def _device(handle: int) -> Device:
    used = ctypes.c_uint64()
    is_known = library().allot_device_memory_used_bytes(handle, ctypes.byref(used)) == 0
    values = {field: _get("device", handle, field) for field in Device.__dataclass_fields__
              if field not in ("memory_used_bytes", "is_cordoned")}
    return Device(memory_used_bytes=used.value if is_known else None,
                  is_cordoned=bool(_get("device", handle, "is_cordoned")), **values)


def _share(handle: int) -> Share:
    values = {field: _get("share", handle, field) for field in Share.__dataclass_fields__}
    values["memory_is_given"] = bool(values["memory_is_given"])
    return Share(**values)


def _tenant(handle: int) -> Tenant:
    values = {field: _get("tenant", handle, field) for field in Tenant.__dataclass_fields__ if field != "shares"}
    count = library().allot_tenant_share_count(handle)
    return Tenant(shares=tuple(_share(library().allot_tenant_share(handle, i)) for i in range(count)), **values)


def read_list(handle: int) -> List:
    """The list behind an allot_list, which stays the caller's."""
    own = library()
    return List(
        devices=tuple(_device(own.allot_list_device(handle, i)) for i in range(own.allot_list_device_count(handle))),
        tenants=tuple(_tenant(own.allot_list_tenant(handle, i)) for i in range(own.allot_list_tenant_count(handle))),
        json=_json.loads(own.allot_list_json(handle)))
