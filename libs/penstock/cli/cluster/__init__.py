"""Commands that run or administer a cluster: `up`, `demo-cluster`, `quarantine`, and one command per service."""
