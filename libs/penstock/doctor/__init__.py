"""Diagnosis of an installation: each check returns findings with their remedies (`penstock doctor`)."""

from penstock.doctor.findings import Finding, Level

__all__ = ["Finding", "Level"]
