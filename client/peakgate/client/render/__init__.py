"""Answers for people: text for a terminal and a page."""
