"""GPU libraries, the host, and a scripted fake: streams, events, graphs, flush."""
