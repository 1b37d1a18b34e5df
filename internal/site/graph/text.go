package graph

import (
	"strings"

	"orrery/internal/text/sanitize"
)

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// shown returns text as it may stand in the file: what a reader could not see is spelt out, and
// nothing of it is markup.
func shown(text string) string { return markup.Replace(sanitize.Line(text)) }

// lines is shown for text of several lines.
func lines(text string) string { return markup.Replace(sanitize.Text(text)) }

// wide estimates how wide a line of text is in a sans-serif face of some size, rather too wide than
// too narrow: there are no metrics here.
func wide(text string, size float64) float64 {
	var em float64
	for _, r := range text {
		em += advance(r)
	}
	return em * size
}

func advance(r rune) float64 {
	switch {
	case strings.ContainsRune(" .,:;|!'ijltfrI()[]/", r):
		return 0.42
	case strings.ContainsRune("mwMW@%", r):
		return 1
	case r >= 'A' && r <= 'Z':
		return 0.78
	case r < 0x80:
		return 0.645
	}
	return 1.05
}

// fit returns as much of a line as is so wide at most, ready for the file.
func fit(text string, size, width float64) string {
	text = sanitize.Line(text)
	if wide(text, size) <= width {
		return markup.Replace(text)
	}
	end, room := 0, width-wide("…", size)
	for i, r := range text {
		if room -= advance(r) * size; room < 0 {
			break
		}
		end = i + len(string(r))
	}
	return markup.Replace(text[:end] + "…")
}
