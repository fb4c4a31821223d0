"""Rules about one device, one node or one request, which the search and the checks share."""
