"""One checkpoint's life: saved, sealed, kept, checked, restored to train or to act."""
