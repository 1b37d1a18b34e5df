package role

import (
	"slices"
	"strings"

	"orrery/internal/site/pins"
)

// pipArguments says what pip shall install. With hashes in the requirements, pip wants every
// package in the file and checks it; without, the file bounds the versions of what the roles name
// and of what that needs.
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

// pipFile returns the requirements as pip takes them: a file that only bounds versions must not name extras.
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

// extended returns packages with the extras with which they are pinned, unless a role names others itself.
func extended(packages []string, lines []pins.Line) []string {
	extras := map[string]string{}
	for _, l := range lines {
		if l.Pin != nil && l.Pin.Extras != "" && !l.Pin.Never() {
			extras[pins.Normal(l.Pin.Name)] = l.Pin.Extras
		}
	}
	all := slices.Clone(packages)
	for i, name := range all {
		all[i] = name + extras[pins.Normal(name)] // there is none with a name in brackets
	}
	return all
}

func sorted(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}
