package role

import (
	"slices"
	"strings"

	"orrery/internal/site/pins"
)

// pipArguments returns the packages and options for pip install. If the requirements have hashes,
// pip requires all packages in the file and verifies them. Otherwise the file only constrains the
// versions of the roles' packages and their dependencies.
func pipArguments(packages []string, requirements, file string) []string {
	lines := pins.Lines(requirements)
	switch {
	case len(lines) == 0:
		return sorted(packages)
	case pins.Hashed(lines):
		return []string{"--require-hashes", "--requirement", file}
	}
	return append([]string{"--constraint", file}, sorted(extended(packages, lines))...)
}

// pipFile returns the requirements in a form that pip accepts. A file with constraints must not
// name extras.
func pipFile(requirements string) string {
	lines := pins.Lines(requirements)
	if pins.Hashed(lines) {
		return requirements
	}
	var text strings.Builder
	for _, l := range lines {
		if l.Pin != nil {
			l.Text = strings.Replace(l.Text, l.Pin.Extras, "", 1)
		}
		text.WriteString(l.Text + "\n")
	}
	return text.String()
}

// extended returns packages with the extras of their pins, except where a role names extras itself.
func extended(packages []string, lines []pins.Line) []string {
	extras := map[string]string{}
	for _, l := range lines {
		if l.Pin != nil && l.Pin.Extras != "" && !l.Pin.Never() {
			extras[pins.Normal(l.Pin.Name)] = l.Pin.Extras
		}
	}
	all := slices.Clone(packages)
	for i, name := range all {
		all[i] = name + extras[pins.Normal(name)] // a name with brackets has no entry
	}
	return all
}

func sorted(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}
