"""Commands that run or administer a cluster: `up`, `demo-cluster`, `quarantine`, `certificates`, `acls`, `doctor`, and
one command per service.
"""
