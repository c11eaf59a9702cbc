"""One plain sentence for each CUDA call, OS call, kernel class, cause and health code."""

from warpline.analyses.words.lookup import KINDS, Description, names_of, words_of

__all__ = ["KINDS", "Description", "names_of", "words_of"]
