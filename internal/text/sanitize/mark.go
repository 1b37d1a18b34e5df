package sanitize

import (
	"bytes"
	"errors"
)

// Unmarked returns the text of a file without the mark (U+FEFF) with which some editors begin it to
// tell how it is encoded. Text that is encoded in another way than as UTF-8 is an error.
func Unmarked(text []byte) ([]byte, error) {
	for _, other := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"},
	} {
		if bytes.HasPrefix(text, []byte(other.mark)) {
			return nil, errors.New("it is encoded as " + other.name + "; save it as UTF-8")
		}
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}
