package check

import (
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// Limits for the length of a generated secret.
const (
	minSecret = 8
	maxSecret = 4096
)

func checkSecrets(ix *index, found *findings) {
	for x := range each(ix.Secrets) {
		key := at("secret", x.Name)
		if !fileNamePattern().MatchString(x.Name) {
			found.report(key, `letters, digits, "_", "." and "-"`, "secret name %q is not a valid file name", x.Name)
		}
		if sources := countTrue(x.File != "", len(x.Command) > 0, x.Generate != 0); sources != 1 {
			found.report(key, "set one of them", "secret %s has %d of file, command and generate", x.Name, sources)
		}
		if x.Generate != 0 && (x.Generate < minSecret || x.Generate > maxSecret) {
			found.report(at("secret", x.Name, "generate"), fmt.Sprintf("%d to %d; 32 is recommended", minSecret,
				maxSecret),
				"generate = %d is out of range", x.Generate)
		}
		if len(x.Command) > 0 && x.Command[0] == "" {
			found.report(at("secret", x.Name, "command"), `such as ["pass", "show", "karoo/db"]`,
				"the command is empty")
		}
		checkSecretForm(ix, found, x)
	}
}

// checkSecretForm checks the format of a secret, which nodes have the same value, and which roles read it.
func checkSecretForm(ix *index, found *findings, x *site.Secret) {
	source := ""
	switch {
	case x.File != "":
		source = "file"
	case len(x.Command) > 0:
		source = "command"
	}
	switch {
	case x.Format != "" && !slices.Contains(secretspec.Formats, x.Format):
		cure := problem.SuggestOr(x.Format, secretspec.Formats, "write "+sentence(secretspec.Formats))
		found.report(at("secret", x.Name, "format"), cure, "%q is not a format of secrets", x.Format)
	case x.Format != "" && source != "":
		found.report(at("secret", x.Name, "format"), "leave format out, or generate the secret",
			"secret %s comes from a %s, which determines its format", x.Name, source)
	}
	switch {
	case x.Per != "" && x.Per != secretspec.PerNode:
		found.report(at("secret", x.Name, "per"), `write per = "node", or leave it out`,
			"%q is not a way to distribute a secret", x.Per)
	case x.Per != "" && source != "":
		found.report(at("secret", x.Name, "per"), "leave per out, or generate the secret",
			"secret %s comes from a %s, which has one value for all nodes", x.Name, source)
	case x.Per == "" && x.Format == secretspec.X509:
		found.report(at("secret", x.Name, "format"), fmt.Sprintf("add secret.%s.per = \"node\"", x.Name),
			"secret %s would be one certificate for all nodes, but a certificate is of one node", x.Name)
	}
	known := names(ix.Roles, func(r *site.Role) string { return r.Name })
	for k, role := range x.Readers {
		key := at("secret", x.Name, "readers", k)
		switch {
		case slices.Index(x.Readers, role) < k:
			found.report(key, "take one of them out", "role %q is listed twice", role)
		case ix.roleByName[role] == nil:
			found.report(key, problem.SuggestOr(role, known, "readers are names of directories in roles/"),
				"reader %q of secret %s is not a role", role, x.Name)
		}
	}
}

func checkRoleSecrets(ix *index, found *findings) {
	known := names(ix.Secrets, func(x *site.Secret) string { return x.Name })
	declared := map[string]*site.Secret{}
	for x := range each(ix.Secrets) {
		declared[x.Name] = x
	}
	for r := range each(ix.Roles) {
		seen := map[string]bool{}
		for k, use := range r.Secrets {
			key := at("role", r.Name, "secret", k, "name")
			switch {
			case use.Name == "":
				found.report(key, `write name = "…"`, "the secret has no name")
			case seen[use.Name]:
				found.report(key, "take one of them out", "secret %q is listed twice", use.Name)
			case ix.used[r.Name] && declared[use.Name] == nil:
				cure := fmt.Sprintf("declare it in site.toml: secret.%s.generate = 32", use.Name)
				found.report(key, problem.SuggestOr(use.Name, known, cure), "secret %q is not declared in the site file", use.Name)
			case declared[use.Name] != nil && !secretspec.Allows(declared[use.Name], r.Name):
				found.report(key, fmt.Sprintf("add %q to readers in [secret.%s], or remove this [[secret]]", r.Name, use.Name),
					"role %s may not read secret %s, which only %s may", r.Name, use.Name, sentence(declared[use.Name].Readers))
			}
			seen[use.Name] = true
			checkOwner(found, at("role", r.Name, "secret", k, "owner"), use.Owner)
		}
	}
}
