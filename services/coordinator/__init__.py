"""The coordinator: declarations, registrations, insertions, placement. Run: `python -m penstock.services.coordinator`."""
