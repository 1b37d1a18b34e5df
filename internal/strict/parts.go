package strict

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// partSize is how much of a file is given to go-toml at once, in bytes. It looks for every key
// among all keys before it, so that ten thousand nodes at once would take half a second. In parts
// they take a tenth of that.
const partSize = 32 << 10

// unmarshal is toml.Unmarshal, in a time proportional to the size of the file.
func unmarshal(content []byte) (map[string]any, *SyntaxError) {
	values := map[string]any{}
	line := 1
	for _, part := range parts(content) {
		var some map[string]any
		if err := toml.Unmarshal(part, &some); err != nil {
			e := &SyntaxError{line, strings.TrimPrefix(err.Error(), "toml: ")}
			if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
				row, _ := at.Position()
				e.Line = line + row - 1
			}
			return nil, e
		}
		if key, ok := merge(values, some); !ok {
			return nil, &SyntaxError{line, "key " + key + " is already defined"}
		}
		line += bytes.Count(part, []byte{'\n'})
	}
	return values, nil
}

// parts cuts a file at the headers of tables. One with arrays of tables stays whole: a part would not know the
// array that it continues; and so does one that is no TOML.
func parts(content []byte) [][]byte {
	var parts [][]byte
	var parser unstable.Parser
	parser.Reset(content)
	start := 0
	for parser.NextExpression() {
		e := parser.Expression()
		switch e.Kind {
		case unstable.ArrayTable:
			return [][]byte{content}
		case unstable.Table:
			if at := int(e.Child().Raw.Offset); at-start >= partSize {
				end := bytes.LastIndexByte(content[:at], '\n') + 1
				parts = append(parts, content[start:end])
				start = end
			}
		}
	}
	if parser.Error() != nil {
		return [][]byte{content}
	}
	return append(parts, content[start:])
}

// merge adds the keys of one table to another. It returns the first key that both have and that is not a table.
func merge(to, from map[string]any) (key string, ok bool) {
	for key, value := range from {
		existing, both := to[key]
		if !both {
			to[key] = value
			continue
		}
		table, isTable := value.(map[string]any)
		other, wasTable := existing.(map[string]any)
		if !isTable || !wasTable {
			return key, false
		}
		if key, ok := merge(other, table); !ok {
			return key, false
		}
	}
	return "", true
}
