"""One plain sentence for each CUDA call, OS call, kernel class, cause and health code."""

from warpline.analyses.words.lookup import KINDS, Words, names_of, words_of

__all__ = ["KINDS", "Words", "names_of", "words_of"]
