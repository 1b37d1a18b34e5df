package journal

import (
	"fmt"
	"strings"
)

// maxEntryBytes limits the length of a line that is read. JSON encodes one byte as at most six, so
// an entry that Add has cut is always shorter.
const maxEntryBytes = 1 << 20

// abbreviate removes the middle of a text that is too long, and inserts the number of bytes removed. The
// beginning says what was done, and the end why it failed.
func abbreviate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/4], text[len(text)-most*3/4:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf(" … %d bytes left out … ", len(text)-len(head)-len(tail)) +
		strings.ToValidUTF8(tail, "")
}
