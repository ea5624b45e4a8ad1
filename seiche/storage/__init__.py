"""Where rows live: segments of changes, Iceberg bases, and relations read at an epoch."""
