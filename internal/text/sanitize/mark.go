package sanitize

import (
	"bytes"
	"errors"
)

// StripBOM returns the content of a file without the byte order mark (U+FEFF) that some editors
// write. It returns an error for a mark of another encoding than UTF-8.
func StripBOM(text []byte) ([]byte, error) {
	for _, other := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"},
	} {
		if bytes.HasPrefix(text, []byte(other.mark)) {
			return nil, errors.New("it is encoded as " + other.name + "; save it as UTF-8")
		}
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}
