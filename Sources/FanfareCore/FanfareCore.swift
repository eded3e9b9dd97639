// The seams of FanfareCore are written first.
