package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/render"
)

// A PartText is what the digest of a part stands for.
type PartText struct {
	Text       []byte
	Attributes string // such as owner and mode, or ""
}

// PartTexts returns the texts of the parts of a node's layers and configuration that have one: files,
// scripts, requirements and environments. They contain placeholders instead of the values of secrets.
func (m *Builder) PartTexts(n *site.Node) (map[string]PartText, error) {
	texts := map[string]PartText{}
	for _, r := range m.Site.RolesOf(n) {
		for i := range r.Files {
			f := &r.Files[i]
			text := render.Text{Content: f.Content}
			if f.Rendered() {
				var err error
				if text, err = m.View.File(r, f, n.Name, render.Placeholder); err != nil {
					return nil, err
				}
			}
			texts[r.Name+": file "+f.Path] = PartText{text.Content, attributes(f.Owner, f.ModeFor(text.Secret))}
		}
		for _, s := range r.Steps {
			texts[r.Name+": step "+s.Name] = PartText{s.Script,
				fmt.Sprintf("interpreter %s, user %s", strings.Join(s.Interpreter, " "), s.User)}
		}
		for name, content := range r.Beside {
			texts[r.Name+": "+name] = PartText{Text: content}
		}
		for _, use := range r.Secrets {
			texts[r.Name+": secret "+use.Name] = PartText{Attributes: m.secretAttributes(use)}
		}
		for _, use := range r.Volumes {
			texts[r.Name+": volume "+use.Name] = PartText{Attributes: attributes(use.Owner, use.Mode)}
		}
		for part, value := range m.paramParts(n, r) {
			texts[part] = PartText{Attributes: value}
		}
		env := ""
		for _, key := range slices.Sorted(maps.Keys(r.Env)) {
			env += key + "=" + r.Env[key] + "\n"
		}
		texts[r.Name+": env"] = PartText{Text: []byte(env)}
		texts[r.Name+": requirements"] = PartText{Text: []byte(normalizePins(n.Requirements.Text))}
	}
	texts["requirements"] = PartText{Text: []byte(normalizePins(n.Requirements.Text))}
	if f, ok := m.accessFile(n); ok {
		texts[AccessPart(f.Path)] = PartText{f.Content, attributes(f.Owner, f.Mode)}
	}
	return texts, nil
}

// secretAttributes returns the attributes of a secret that a role reads.
func (m *Builder) secretAttributes(use site.SecretUse) string {
	text := attributes(use.Owner, use.Mode)
	if x, ok := m.Site.Secret(use.Name); ok && x.Format != "" {
		text += ", format " + x.Format
	}
	if x, ok := m.Site.Secret(use.Name); ok && x.Per != "" {
		text += ", per " + x.Per
	}
	return text
}

func attributes(owner string, mode uint32) string {
	return fmt.Sprintf("owner %s, mode %04o", owner, mode)
}
