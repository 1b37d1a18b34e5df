package table

import (
	"fmt"
	"io"

	"orrery/internal/cli/reply"
)

// below prints a list after the nodes: a line for each element that has one, or in JSON all of them under
// a key.
func below[T any](w io.Writer, key string, all []T, line func(*T) string) error {
	if len(all) == 0 {
		return nil
	}
	if r, ok := w.(*reply.Reply); ok {
		return r.Add(key, all)
	}
	for i := range all {
		if text := line(&all[i]); text != "" {
			fmt.Fprintln(w, text)
		}
	}
	return nil
}
