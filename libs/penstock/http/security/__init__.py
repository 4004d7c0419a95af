"""Authentication and authorization of HTTP requests, and TLS (ADR 66).

A request carries a bearer token. The token is either a static token of a file, or a JWT of an issuer (ADR 67). A token
has a name, a role and limits. A route needs a role. Every change is written to the audit log. Health checks, the page
and the login need no token.
"""

from penstock.http.security.roles import Identity, Role, role_of
from penstock.http.security.tokens import TokenError, TokenFile, new_token

__all__ = ["Identity", "Role", "TokenError", "TokenFile", "new_token", "role_of"]
