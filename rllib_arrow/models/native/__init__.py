"""Inner loops of the networks in C++, for the CPU; last digits differ from torch's."""
