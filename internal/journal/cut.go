package journal

import (
	"fmt"
	"strings"
)

// maxEntryBytes is how long a line may be. JSON makes at most six bytes of one, and so no entry that Add
// has cut comes near it.
const maxEntryBytes = 1 << 20

// cut takes out the middle of a text that is too long, and says how much: it begins with what was
// done and ends with why it failed.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/4], text[len(text)-most*3/4:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf(" … %d bytes left out … ", len(text)-len(head)-len(tail)) +
		strings.ToValidUTF8(tail, "")
}
