// Package jsonlimit decodes JSON of an untrusted peer in bounded memory: the length of the text is
// the bound.
//
// encoding/json allocates a whole element for each "{}" of an array, so 3 MB of text can become gigabytes of
// structures. Unmarshal first adds up what decoding the text into its type will allocate, without allocating
// anything, and refuses a text that costs far more than any text an honest peer writes. So a limit on the bytes
// of a message is a limit on memory, for every type, and no type needs a limit of its own.
package jsonlimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Factor is how many bytes of memory each byte of a text may cost, beyond the first Free bytes.
// Messages of Orrery cost about 3 for each byte; a "{}," that becomes a node costs several hundred.
const (
	Factor = 8
	Free   = 1 << 20
)

// ErrTooCostly is the error of a text that would take more memory than its length allows.
var ErrTooCostly = errors.New("it would take far more memory than its length allows")

// Unmarshal is json.Unmarshal for text that an untrusted peer has sent. If decoding would allocate
// more than Free bytes and Factor for each byte of the text, it returns ErrTooCostly and decodes
// nothing.
func Unmarshal(text []byte, into any) error {
	to := reflect.TypeOf(into)
	if to == nil || to.Kind() != reflect.Pointer {
		return json.Unmarshal(text, into) // an error of the caller, which it names
	}
	budget := Free + Factor*len(text)
	if cost := costOf(text, shapeOf(to.Elem()), budget); cost > budget {
		return fmt.Errorf("%w: %d bytes of JSON for a %v", ErrTooCostly, len(text), to.Elem())
	}
	return json.Unmarshal(text, into)
}
