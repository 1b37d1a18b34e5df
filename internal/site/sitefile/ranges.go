package sitefile

import (
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
)

var rangePattern = pattern.New(`^([^{}]*)\{([0-9]{1,9})\.\.([0-9]{1,9})\}([^{}]*)$`)

// maxName limits the length of a name, so that no range of names exhausts the memory. Legal names
// are shorter.
const maxName = 200

// expand returns the names in a range: "a{08..10}" stands for a08, a09 and a10. It returns a
// problem if there are more than most names.
func expand(name string, most int) ([]string, *problem.Problem) {
	if len(name) > maxName {
		return nil, mistake("the name %s has more than %d characters", strict.Describe(name), maxName).
			Try("choose a shorter one")
	}
	if !strings.ContainsAny(name, "{}") {
		if most < 1 {
			return nil, mistake("the site has more than %d nodes with %q", maxNodes, name).Try("make several sites")
		}
		return []string{name}, nil
	}
	m := rangePattern().FindStringSubmatch(name)
	if m == nil {
		return nil, mistake("%q is not a range", name).Try(`write "receptor{00..63}"`)
	}
	first, _ := strconv.Atoi(m[2])
	last, _ := strconv.Atoi(m[3])
	switch {
	case first > last:
		return nil, mistake("the range %q is reversed", name).Try(`write "%s{%s..%s}%s"`, m[1], m[3], m[2], m[4])
	case last-first >= most:
		return nil, mistake("the site has more than %d nodes with the %d of %q", maxNodes, last-first+1, name).
			Try("make several sites")
	}
	width := 0
	if padded(m[2]) || padded(m[3]) {
		width = max(len(m[2]), len(m[3])) // as in a shell's brace expansion
	}
	names := make([]string, 0, last-first+1)
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("%s%0*d%s", m[1], width, i, m[4]))
	}
	return names, nil
}

func padded(number string) bool { return len(number) > 1 && number[0] == '0' }
