"""Talks to the API server: reads claims, publishes slices, collects what nobody unprepares."""
