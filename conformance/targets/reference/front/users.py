"""Who makes a request: bearer tokens, and impersonation by those who may do everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from conformance.targets.seam.values import ApiError, User

_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
_NODE: Final = "impersonate-extra-authentication.kubernetes.io%2fnode-name"


def user_of(headers: Mapping[str, str], tokens: Mapping[str, User | None]) -> User | None:
    """In whose name a request is made; None may do everything.

    Args:
        headers: of the request, with names in lower case.
        tokens: bearer token -> the account that it is of, None for the administrator.

    Raises:
        ApiError: 401 without a known token; 403 where an account impersonates another, or anybody
            is impersonated who is no service account.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or token not in tokens:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    user, wanted = tokens[token], headers.get("impersonate-user")
    if wanted is None:
        return user
    account = _ACCOUNT.fullmatch(wanted)
    if user is not None or account is None:
        who = user or "system:admin"
        text = f'users "{wanted}" is forbidden: User "{who}" cannot impersonate resource "users"'
        raise ApiError(403, "Forbidden", f'{text} in API group "" at the cluster scope')
    return User(account[1], account[2], headers.get(_NODE, ""))
