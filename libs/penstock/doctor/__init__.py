"""Diagnosis of an installation (`penstock doctor`). Each check returns findings with remedies."""

from penstock.doctor.findings import Finding, Level

__all__ = ["Finding", "Level"]
