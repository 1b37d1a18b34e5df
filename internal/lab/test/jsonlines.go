package test

import (
	"bytes"
	"fmt"

	"orrery/internal/strict/jsonlimit"
)

// JSONLines decodes the output of a program, one JSON object per line, and calls check for each
// object. Errors name the line.
func JSONLines[T any](out []byte, check func(T) error) error {
	for n, text := range bytes.Split(out, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var line T
		if err := jsonlimit.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("line %d is not JSON: %.60q", n+1, text)
		}
		if err := check(line); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return nil
}
