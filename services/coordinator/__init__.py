"""The coordinator: declarations, registrations, placement. Run: `python -m penstock.services.coordinator`."""
