package strict

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxPartBytes is the number of bytes of a file that go-toml parses at once. go-toml searches for every
// key among all previous keys. Ten thousand nodes in one part would take half a second, and take a
// tenth of that in several parts.
const maxPartBytes = 32 << 10

// unmarshal is toml.Unmarshal with a running time proportional to the size of the file.
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

// parts splits a file at table headers. A file with arrays of tables stays whole, because a part
// would not know the array that it continues. An invalid file also stays whole.
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
			if at := int(e.Child().Raw.Offset); at-start >= maxPartBytes {
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

// merge adds the keys of one table to another. If both tables have a key that is not a table in
// both, merge returns that key and false.
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
