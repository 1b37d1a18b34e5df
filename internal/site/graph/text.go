package graph

import (
	"strings"

	"orrery/internal/text/sanitize"
)

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escapeLine returns text that is safe in the SVG file. Invisible characters are spelt out, and markup
// is escaped.
func escapeLine(text string) string { return markup.Replace(sanitize.Line(text)) }

// escapeText is the variant of shown for text with several lines.
func escapeText(text string) string { return markup.Replace(sanitize.Text(text)) }

// textWidth estimates the width of a line of text in a sans-serif font of some size. It rather
// overestimates, because font metrics are not available.
func textWidth(text string, size float64) float64 {
	var em float64
	for _, r := range text {
		em += runeWidth(r)
	}
	return em * size
}

func runeWidth(r rune) float64 {
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

// truncateLine returns the line, escaped and truncated to a width.
func truncateLine(text string, size, width float64) string {
	text = sanitize.Line(text)
	if textWidth(text, size) <= width {
		return markup.Replace(text)
	}
	end, room := 0, width-textWidth("…", size)
	for i, r := range text {
		if room -= runeWidth(r) * size; room < 0 {
			break
		}
		end = i + len(string(r))
	}
	return markup.Replace(text[:end] + "…")
}
