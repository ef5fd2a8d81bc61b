"""The names that test_dra.py and test_dra_faults.py still use for ApiProxy. Remove this file when they use the new ones."""

from api_proxy import ApiProxy


class Door(ApiProxy):
    shut = ApiProxy.refuse
    unshut = ApiProxy.accept
