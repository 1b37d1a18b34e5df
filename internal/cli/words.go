package cli

import "fmt"

// count says how many there are of something.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shortList joins at most so many words.
func shortList(words []string, most int) string {
	text := ""
	for i, w := range words {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(words)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += w
	}
	return text
}
