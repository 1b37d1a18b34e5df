package diff

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"orrery/internal/text/humanize"
)

const (
	maxTextBytes = 256 << 10 // of a text that is compared line by line
	maxDiffLines = 200       // of the diff of one text
)

// unified returns the unified diff of a part's text, or its sizes if it is large or not text. A part
// that did not exist or will not exist is named /dev/null, as in patches.
func unified(part string, old, desired []byte, existed, exists bool) []string {
	if bytes.Equal(old, desired) && existed && exists {
		return nil
	}
	if !isComparable(old) || !isComparable(desired) {
		return []string{value(part, size(old, existed), size(desired, exists))}
	}
	from, to := part, part
	if !existed {
		from = "/dev/null"
	}
	if !exists {
		to = "/dev/null"
	}
	text := udiff.Unified(from, to, string(old), string(desired))
	if text == "" { // an empty file was added or removed
		return []string{value(part, size(old, existed), size(desired, exists))}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if more := len(lines) - maxDiffLines; more > 0 {
		lines = append(lines[:maxDiffLines:maxDiffLines], fmt.Sprintf("… and %s", humanize.Plural(more, "more line")))
	}
	return lines
}

// isComparable reports whether a text can be shown line by line.
func isComparable(text []byte) bool {
	return len(text) <= maxTextBytes && utf8.Valid(text) && !bytes.ContainsRune(text, 0)
}

func size(text []byte, exists bool) string {
	if !exists {
		return ""
	}
	return humanize.Plural(len(text), "byte")
}
