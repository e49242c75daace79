"""Beginnings of texts, in plain English and in code, for models to go on with."""

PROMPTS = (
    "The old lighthouse keeper climbed the stairs one last time because he knew that",
    "To bake a good loaf of bread you need flour, water, salt and",
    "In the spring of that year the river rose so high that the villagers",
    "def mean(values):\n    total = 0\n    for value in values:",
    "Dear Anna,\nThank you for your letter. I was very happy to hear that",
    "Photosynthesis is the process by which plants turn light into",
    "The committee met on Tuesday to discuss the new budget, and after two hours",
    "import random\n\nclass Deck:\n    def __init__(self):",
    "Once upon a time there was a small fox who lived at the edge of",
    "The three largest cities of the country are, in order of population,",
    "She opened the box slowly. Inside, wrapped in yellow paper, was",
    "A prime number is a natural number greater than one that",
    "Breaking news: scientists have announced that a probe sent to Mars",
    "Q: Why is the sky blue during the day?\nA: Because",
    "The recipe is simple. First, heat the oil in a large pan, then",
    "He did not want to go to the meeting, but his manager told him",
)
