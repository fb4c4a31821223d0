"""The API server's side: reading claims, publishing slices, collecting what nobody unprepares."""
