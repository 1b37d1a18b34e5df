package secret

// fetched has the values that any keyring of this process has fetched. It is for log messages that
// belong to no particular site.
var fetched = Keyring{values: map[string]string{}}

// rememberFetched adds a value for Redact. Several sites may have different secrets with the same name.
func rememberFetched(name, value string) {
	fetched.mu.Lock()
	defer fetched.mu.Unlock()
	for known, again := fetched.values[name]; again && known != value; known, again = fetched.values[name] {
		name += "'"
	}
	fetched.values[name] = value
}

// Redact replaces the values of all secrets that this process has fetched by their names.
func Redact(text string) string { return fetched.Redact(text) }
