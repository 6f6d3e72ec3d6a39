"""Records on disk, the input pipeline, and the drawing of points on the device."""
