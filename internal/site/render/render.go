package render

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"text/template"

	"orrery/internal/site"
	"orrery/internal/site/params"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/selector"
)

// Secrets returns a part of the secret called name: its value if part is Whole, or what is worked out of it.
type Secrets func(name, part string) (string, error)

// Parts of secrets, which are also the names of the functions of templates that return them.
const (
	Whole       = "secret"
	Fingerprint = "fingerprint" // SHA-256
	SCRAM       = "scram"       // the verifier of a password, as PostgreSQL stores it
	PublicKey   = "public_key"  // of a key of SSH, as in authorized_keys
	PrivateKey  = "private_key" // of a certificate
	Certificate = "certificate"
	CA          = "ca" // the certificates of the site's certificate authority
)

// secretParts are the parts of secrets.
var secretParts = []string{Whole, Fingerprint, SCRAM, PublicKey, PrivateKey, Certificate, CA}

// hasPart reports whether a secret has a part.
func hasPart(x *site.Secret, part string) bool {
	switch part {
	case SCRAM:
		return x.Format != secretspec.SSH && x.Format != secretspec.X509
	case PublicKey:
		return x.Format == secretspec.SSH
	case PrivateKey, Certificate, CA:
		return x.Format == secretspec.X509
	}
	return true
}

// Placeholder is a Secrets for digests and plans, which must not contain values. It returns a
// placeholder.
func Placeholder(name, part string) (string, error) {
	if part == Whole {
		return "<secret " + name + ">", nil
	}
	return "<" + part + " of secret " + name + ">", nil
}

// A Text is a rendered file.
type Text struct {
	Content []byte
	Secret  bool // contains the value of a secret, so it must never be written to a disk
}

// parsed is a template that is parsed once and executed for many nodes. Its functions read the
// current node's state from this struct, because text/template binds functions when it parses.
type parsed struct {
	template *template.Template
	secrets  Secrets
	secret   bool
	work     int // work of the current execution, see maxWork
}

// File renders a file of a role for a node. An invalid template results in a Mistake with its line.
func (v *View) File(role *site.Role, f *site.File, node string, secrets Secrets) (Text, error) {
	p, err := v.parse(role, f)
	if err != nil {
		return Text{}, mistake(role, f, err)
	}
	p.secrets, p.secret, p.work = secrets, false, 0
	var out bounded
	err = p.template.Execute(&out, map[string]any{
		"Node":     v.byName[node],
		"Site":     SiteView{v.site.Name, v.site.Twin, v.site.Owner, v.site.Production, v.site.Vars},
		"Role":     role.Name,
		"Env":      role.Env,
		"Param":    v.params(role, node),
		"Nodes":    v.nodes,
		"Networks": v.networks,
		"Services": v.services(node),
		"Answers":  v.answers(node),
		"Health":   func() string { return v.healthScript(node) },
	})
	if err != nil {
		return Text{}, mistake(role, f, err)
	}
	return Text{out.text, p.secret}, nil
}

// params returns the parameters of a role on a node.
func (v *View) params(role *site.Role, node string) map[string]any {
	if n := v.byName[node]; n != nil && len(role.Params) > 0 {
		return params.Of(v.site, n.model, role)
	}
	return nil
}

func (v *View) parse(role *site.Role, f *site.File) (*parsed, error) {
	key := role.Name + "/" + f.Template
	if p, ok := v.parsed[key]; ok {
		return p, nil
	}
	if len(f.Content) > maxSource {
		return nil, &exhausted{what: fmt.Sprintf("the template has more than %d MiB", maxSource>>20)}
	}
	p := &parsed{}
	t, err := template.New(f.Template).Option("missingkey=error").Funcs(v.functions(role, p)).Parse(string(f.Content))
	if err != nil {
		return nil, err
	}
	if err := counted(t); err != nil {
		return nil, err
	}
	p.template = t
	v.parsed[key] = p
	return p, nil
}

func (v *View) functions(role *site.Role, p *parsed) template.FuncMap {
	all := template.FuncMap{
		count:    func(cost, line int) (string, error) { return "", p.spend(cost, line) },
		"peers":  v.Peers,
		"select": func(text string) ([]*NodeView, error) { return v.choose(p, text) },
		"node": func(name string) (*NodeView, error) {
			if n, ok := v.byName[name]; ok {
				return n, nil
			}
			if o := v.site.Original; o != nil {
				if _, left := o.Node(name); left {
					return nil, fmt.Errorf("node %q is not in twin %s", name, v.site.Twin)
				}
			}
			return nil, fmt.Errorf("no node is called %q", name)
		},
		"address": func(n *NodeView, network string) (netip.Addr, error) {
			if a, ok := n.Addresses[network]; ok {
				return a, nil
			}
			return netip.Addr{}, fmt.Errorf("node %s is not on network %q", n.Name, network)
		},
		"json": func(x any) (string, error) {
			text, err := json.Marshal(x)
			if err != nil {
				return "", err
			}
			return p.countResult(string(text))
		},
		"join":     p.join,
		"quote":    p.quote,
		"printf":   p.printf,
		"print":    p.plain(fmt.Sprint),
		"println":  p.plain(fmt.Sprintln),
		"html":     p.plain(template.HTMLEscaper),
		"js":       p.plain(template.JSEscaper),
		"urlquery": p.plain(template.URLQueryEscaper),
	}
	for _, part := range secretParts {
		all[part] = func(name string) (string, error) { return v.secretPart(role, p, name, part) }
	}
	return all
}

// secretPart returns a part of a secret, if the role may read the secret. A file with any part of a secret is
// treated like one with its value, because a plan does not know the part.
func (v *View) secretPart(role *site.Role, p *parsed, name, part string) (string, error) {
	if !slices.ContainsFunc(role.Secrets, func(use site.SecretUse) bool { return use.Name == name }) {
		return "", fmt.Errorf("role %s has no [[secret]] named %q", role.Name, name)
	}
	if x, ok := v.site.Secret(name); ok && !secretspec.Allows(x, role.Name) {
		return "", fmt.Errorf("role %s is not among the readers of secret %q", role.Name, name)
	}
	if x, ok := v.site.Secret(name); ok && !hasPart(x, part) {
		return "", fmt.Errorf("secret %q has no %s: its format is %q", name, part, x.Format)
	}
	p.secret = true
	return p.secrets(name, part)
}

// choose is the variant of Select for templates. It charges the work for each new selector, because
// a template may use many.
func (v *View) choose(p *parsed, text string) ([]*NodeView, error) {
	if _, before := v.chosen[text]; !before {
		if err := p.spend((1+len(text)/8)*len(v.nodes), 0); err != nil {
			return nil, err
		}
	}
	return v.Select(text)
}

// Select returns the nodes that match a selector, in order of id.
func (v *View) Select(text string) ([]*NodeView, error) {
	if views, ok := v.chosen[text]; ok {
		return views, nil
	}
	nodes, err := selector.Select(v.site, text)
	if err != nil {
		return nil, err
	}
	views := make([]*NodeView, len(nodes))
	for i, n := range nodes {
		views[i] = v.byName[n.Name]
	}
	v.chosen[text] = views
	return views, nil
}

func quoted(x any) string { return strconv.Quote(fmt.Sprint(x)) }

func texts(list any) []string {
	var out []string
	switch l := list.(type) {
	case []string:
		return l
	case []*NodeView:
		for _, n := range l {
			out = append(out, n.Name)
		}
	case []any:
		for _, x := range l {
			out = append(out, fmt.Sprint(x))
		}
	default:
		out = append(out, fmt.Sprint(list))
	}
	return out
}
