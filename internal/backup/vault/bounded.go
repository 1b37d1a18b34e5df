package vault

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// bounded is a list that is parsed from JSON element by element, up to a limit. Without it,
// encoding/json would turn `[1,1,1]` into three empty elements, which take a hundred times the
// memory of the text.
type bounded[T any] []T

// Limits of a list, far beyond what a backup has.
const (
	maxElements     = 1 << 18
	maxElementBytes = 8 << 20   // bytes of JSON for one element; an extent may have more
	maxMemoryBytes  = 128 << 20 // bytes of all elements without what they point to
)

// UnmarshalJSON parses a list.
func (l *bounded[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	if string(text) == "null" {
		return nil
	}
	most := min(maxElements, maxMemoryBytes/int(reflect.TypeFor[T]().Size()))
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("it is not a list")
	}
	for d.More() {
		var x T
		before := d.InputOffset()
		if err := d.Decode(&x); err != nil {
			return err
		}
		if _, extent := any(x).(Extent); !extent && d.InputOffset()-before > maxElementBytes {
			return fmt.Errorf("an element of %d bytes: %w", d.InputOffset()-before, ErrBounds)
		}
		if len(*l) >= most {
			return fmt.Errorf("a list of more than %d elements: %w", most, ErrBounds)
		}
		*l = append(*l, x)
	}
	return nil
}

// digests are the digests of consecutive pieces.
type digests []Digest

// UnmarshalJSON parses digests. The text of a digest is twice as large as the digest in memory.
func (all *digests) UnmarshalJSON(text []byte) error {
	const quoted = 2 + 2*len(Digest{})
	*all = nil
	if string(text) == "null" {
		return nil
	}
	skip := func(c byte) bool {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != c {
			return false
		}
		text = text[1:]
		return true
	}
	if !skip('[') {
		return errors.New("it is not a list of digests")
	}
	for !skip(']') {
		if len(*all) > 0 && !skip(',') {
			return errors.New("it is not a list of digests")
		}
		text = bytes.TrimLeft(text, " \t\r\n")
		var d Digest
		if len(text) < quoted || text[0] != '"' || text[quoted-1] != '"' {
			return errors.New("it is not a list of digests")
		}
		if _, err := hex.Decode(d[:], text[1:quoted-1]); err != nil {
			return err
		}
		*all, text = append(*all, d), text[quoted:]
	}
	return nil
}
