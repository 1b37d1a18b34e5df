// Package jsonlimit decodes JSON of an untrusted peer in memory proportional to its length.
//
// encoding/json allocates a whole element for each "{}" of an array, so 3 MB of text can become
// gigabytes of structures. Unmarshal first adds up what decoding the text into its type will
// allocate, without allocating anything. It rejects a text that costs far more than any text from
// an honest peer. A limit on the bytes of a message is therefore a limit on memory, and no type
// needs a limit of its own.
package jsonlimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Factor is how many bytes of memory each byte of a text may cost, beyond the first Free bytes.
// Messages of Orrery cost about 3 bytes per byte. A "{}," that becomes a node costs several
// hundred.
const (
	Factor = 8
	Free   = 1 << 20
)

// ErrTooCostly is the error of a text that would use more memory than its length allows.
var ErrTooCostly = errors.New("it would take far more memory than its length allows")

// Unmarshal is json.Unmarshal for text from an untrusted peer. If decoding would allocate more than
// Free bytes plus Factor bytes per byte of text, it returns ErrTooCostly and decodes nothing.
func Unmarshal(text []byte, into any) error {
	to := reflect.TypeOf(into)
	if to == nil || to.Kind() != reflect.Pointer {
		return json.Unmarshal(text, into) // returns an error that describes the caller's mistake
	}
	budget := Free + Factor*len(text)
	if cost := costOf(text, shapeOf(to.Elem()), budget); cost > budget {
		return fmt.Errorf("%w: %d bytes of JSON for a %v", ErrTooCostly, len(text), to.Elem())
	}
	return json.Unmarshal(text, into)
}
