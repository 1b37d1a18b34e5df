package volume

import (
	"context"
	"strings"
)

// A Difference is a file of a volume that differs from its mirror.
type Difference struct {
	Path string `json:"path"`
	What string `json:"what"` // "missing", or what differs
}

// Verify compares a volume with its mirror, by the contents of all files. It does not report files
// that are only in the mirror, since they are kept there.
func (m Mirror) Verify(ctx context.Context) ([]Difference, error) {
	if err := m.checkAvailable(); err != nil {
		return nil, err
	}
	out, err := m.rsync(ctx, "--dry-run", "--checksum", "--out-format=%i %n%L")
	if err != nil {
		return nil, err
	}
	var all []Difference
	for line := range strings.Lines(out) {
		code, path, ok := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if ok && len(code) == 11 {
			all = append(all, Difference{path, describeDifference(code)})
		}
	}
	return all, nil
}

// describeDifference describes rsync's itemized change code, such as ">fc.t......".
func describeDifference(code string) string {
	if strings.HasSuffix(code, "+++") {
		return "missing"
	}
	words := map[byte]string{
		'c': "content", 's': "size", 't': "time", 'T': "time", 'p': "mode", 'o': "owner", 'g': "group", 'a': "ACL",
		'x': "extended attributes",
	}
	var what []string
	for i := 2; i < len(code); i++ {
		if word, ok := words[code[i]]; ok {
			what = append(what, word)
		}
	}
	if len(what) == 0 {
		return "another file"
	}
	return strings.Join(what, ", ")
}
