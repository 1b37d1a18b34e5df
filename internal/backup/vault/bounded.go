package vault

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// What is bounded is a list that is read from JSON element by element, and only as far as it is in
// order: what encoding/json makes of `[1,1,1]`, three elements that are empty, takes a hundred
// times the memory that the text does.
type bounded[T any] []T

// Bounds of a list, far beyond what a backup has.
const (
	maxElements     = 1 << 18
	maxElementBytes = 8 << 20   // bytes of JSON; an extent may have more
	maxMemoryBytes  = 128 << 20 // bytes that elements take before what they refer to
)

// UnmarshalJSON reads a list.
func (l *bounded[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	if string(text) == "null" {
		return nil
	}
	most := min(maxElements, maxMemoryBytes/int(reflect.TypeFor[T]().Size()))
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("it is no list")
	}
	for d.More() {
		var x T
		before := d.InputOffset()
		if err := d.Decode(&x); err != nil {
			return err
		}
		if _, extent := any(x).(Extent); !extent && d.InputOffset()-before > maxElementBytes {
			return fmt.Errorf("one of %d bytes: %w", d.InputOffset()-before, ErrBounds)
		}
		if len(*l) >= most {
			return fmt.Errorf("more than %d in a list: %w", most, ErrBounds)
		}
		*l = append(*l, x)
	}
	return nil
}

// Digests are those of pieces in a row.
type digests []Digest

// UnmarshalJSON reads digests; each takes twice the text of what it takes in memory.
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
		return errors.New("it is no list of digests")
	}
	for !skip(']') {
		if len(*all) > 0 && !skip(',') {
			return errors.New("it is no list of digests")
		}
		text = bytes.TrimLeft(text, " \t\r\n")
		var d Digest
		if len(text) < quoted || text[0] != '"' || text[quoted-1] != '"' {
			return errors.New("it is no list of digests")
		}
		if _, err := hex.Decode(d[:], text[1:quoted-1]); err != nil {
			return err
		}
		*all, text = append(*all, d), text[quoted:]
	}
	return nil
}
