"""Every sentence that people read, in Portuguese and in English."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from policies.text import clean

_VALUE_LIMIT = 300  # characters of one foreign value inside a sentence


class Lang(StrEnum):
    """The languages of `--lang`."""

    PT = "pt"
    EN = "en"


TEXTS: Final[dict[str, tuple[str, str]]] = {
    # what a watch says while it waits
    "armed": (
        "armado: {target} até {until} (TTL {ttl})",
        "armed: {target} until {until} (TTL {ttl})",
    ),
    "countdown": ("⏳ {label} — faltam {left}", "⏳ {label} — {left} left"),
    "matched": ("casou: PID {pid}: {command}", "matched: PID {pid}: {command}"),
    "matched_more": (
        "casou: mais {count} processos",
        "matched: {count} more processes",
    ),
    "every_raised": (
        "--every {every} é menor que o piso; usando {floor}",
        "--every {every} is below the floor; using {floor}",
    ),
    "cannot_see": (
        "sem leitura de {label}: {reason}; continuo olhando",
        "cannot see {label}: {reason}; still looking",
    ),
    "sees_again": ("{label} voltou a ser lido", "{label} can be seen again"),
    "retaken": (
        "lock {label} liberado e retomado por {holder}; continuo esperando",
        "lock {label} released and retaken by {holder}; still waiting",
    ),
    "maybe_retaken": (
        "lock {label} alterado ou retomado; continuo esperando",
        "lock {label} changed or retaken; still waiting",
    ),
    "someone": ("outro dono", "another holder"),
    "inotify_limit": (
        "sem eventos de arquivo: limite do inotify ({error}; veja "
        "/proc/sys/fs/inotify); continuo por leituras periódicas",
        "no file events: inotify limit ({error}; see /proc/sys/fs/inotify); "
        "going on by polling",
    ),
    "start_awaited": (
        "nada casa ainda; espero o começo por {start_within}",
        "nothing matches yet; waiting for its start for {start_within}",
    ),
    "kernel_thread": (
        "o PID {pid} é uma thread do kernel ({command}) e não termina",
        "PID {pid} is a kernel thread ({command}), which does not end",
    ),
    "interrupted": (
        "interrompido: a espera foi desfeita; para mantê-la, rode em segundo plano (&)",
        "interrupted: the wait is over; to keep it, run it in the background (&)",
    ),
    "stopped": (
        "encerrado por {signal}: a espera por {label} acaba aqui; arme de novo",
        "ended by {signal}: the wait for {label} ends here; arm it again",
    ),
    # why something could not be seen
    "errno": ("{name}: {path}", "{name}: {path}"),
    "denied": ("sem permissão: {path}", "permission denied: {path}"),
    "directory_missing": (
        "o diretório {path} não existe",
        "the directory {path} does not exist",
    ),
    "directory_vanished": (
        "o diretório {path} sumiu",
        "the directory {path} has vanished",
    ),
    "unmounted": ("{path} foi desmontado", "{path} was unmounted"),
    "hung": ("sem resposta: {what}", "no answer: {what}"),
    "probe_failed": ("a leitura falhou: {error}", "the look failed: {error}"),
    "proc_hidden": (
        "o /proc deste host esconde processos",
        "/proc of this host hides processes",
    ),
    "pids_stuck": (
        "a linha de comando do PID {pids} não pôde ser lida",
        "the command line of PID {pids} could not be read",
    ),
    "nothing_matches": (
        "nenhum processo encontrado; nunca visto",
        "no process found; never seen",
    ),
    "slow_regex": (
        "a expressão {regex} demora demais",
        "the expression {regex} takes too long",
    ),
    "no_pid_in": ("{path} não contém um PID", "{path} holds no PID"),
    "pidfile_missing": ("{path} não existe", "{path} does not exist"),
    # remarks at the end of a line
    "asleep": ("a máquina dormiu {span}", "the machine slept for {span}"),
    "near_lock": (
        "atenção: existe um lock de nome parecido: {name}",
        "careful: there is a lock with a near name: {name}",
    ),
    "orphan": (
        "órfão: dono (PID {pid}) não existe neste host: lock abandonado?",
        "órfão: holder (PID {pid}) does not exist on this host: abandoned lock?",
    ),
    # pings
    "ping_logged": (
        "ping gravado em {path}: {reason}",
        "ping written to {path}: {reason}",
    ),
    "ping_lost": (
        "PING NÃO ENTREGUE NEM GRAVADO ({reason}): {message}",
        "PING NEITHER DELIVERED NOR WRITTEN ({reason}): {message}",
    ),
    "no_channel": (
        "nenhum canal configurado ([notify] url)",
        "no channel configured ([notify] url)",
    ),
    "key_open": (
        "chave {path} legível por outros, não usada; rode: chmod 600 {path}",
        "key {path} readable by others, not used; run: chmod 600 {path}",
    ),
    "key_unreadable": (
        "chave {path} ilegível ({error}); confira [notify] key_file",
        "key {path} unreadable ({error}); check [notify] key_file",
    ),
    "key_malformed": (
        "a chave de {path} está vazia ou tem caracteres inválidos",
        "the key of {path} is empty or has invalid characters",
    ),
    "refused": ("recusado: {error}", "refused: {error}"),
    "not_delivered": ("não entregue: {error}", "not delivered: {error}"),
    "cut_short": (
        "envio interrompido por um sinal",
        "sending was cut short by a signal",
    ),
    "whole_text": (
        "texto cortado no envio; inteiro aqui",
        "cut when sent; whole here",
    ),
    # errors of use: each says what to do
    "error": ("erro: {what}", "error: {what}"),
    "see_help": (
        "{what}; veja '{program} --help'",
        "{what}; see '{program} --help'",
    ),
    "internal": (
        "erro interno: {error}; rode com KODER_MONITOR_DEBUG=1 e relate",
        "internal error: {error}; run with KODER_MONITOR_DEBUG=1 and report it",
    ),
    "bad_duration": (
        "{name} {value} não é uma duração; use por exemplo 45s, 30m, 1h30m, 2d ou "
        "segundos (máximo 365d)",
        "{name} {value} is no duration; use for example 45s, 30m, 1h30m, 2d or "
        "seconds (365d at most)",
    ),
    "bad_slug": (
        "'{slug}' não é um slug; use letras, dígitos, '.', '_' e '-', ou um caminho "
        "com '/', como ./{slug}",
        "'{slug}' is no slug; use letters, digits, '.', '_' and '-', or a path with "
        "'/', as ./{slug}",
    ),
    "bad_path": (
        "{name} '{path}' não é um caminho possível; confira",
        "{name} '{path}' is no possible path; check it",
    ),
    "bad_pid": (
        "'{pid}' não é um PID; use um número de 1 a 4194304",
        "'{pid}' is no PID; use a number from 1 to 4194304",
    ),
    "bad_regex": (
        "expressão regular inválida: {error}; corrija, ou use --match para "
        "texto literal",
        "invalid regular expression: {error}; mend it or use --match for literal text",
    ),
    "empty_pattern": (
        "um padrão vazio casa com tudo; diga parte da linha de comando",
        "an empty pattern matches everything; give part of the command line",
    ),
    "bad_label": (
        "o rótulo '{label}' não diz nada; diga o que é esperado, como 'build da API'",
        "the label '{label}' says nothing; say what is awaited, as 'API build'",
    ),
    "bad_session": (
        "sessão '{session}' inválida; use letras, dígitos, '.', '_' e '-'",
        "invalid session '{session}'; use letters, digits, '.', '_' and '-'",
    ),
    "no_lock_dir": (
        "nenhum diretório de locks: defina [locks] dir ou KODER_MONITOR_LOCKS_DIR "
        "(o padrão {path} não existe)",
        "no lock directory: set [locks] dir or KODER_MONITOR_LOCKS_DIR "
        "(the default {path} does not exist)",
    ),
    "no_cwd": (
        "o diretório atual foi apagado; vá para outro (cd)",
        "the current directory was deleted; go to another (cd)",
    ),
    "is_directory": (
        "{path} é um diretório; dê o caminho do arquivo de lock",
        "{path} is a directory; give the path of the lock file",
    ),
    "own_pid": (
        "o PID {pid} é o próprio monitor; dê o PID do trabalho",
        "PID {pid} is the monitor itself; give the PID of the work",
    ),
    "own_pidfile": (
        "pidfile aponta para o próprio monitor (PID {pid}): {path}; está velho",
        "the pidfile points to the monitor itself (PID {pid}): {path}; it is stale",
    ),
    "foreign_pidfile": (
        "o PID {pid} de {path} aqui é {command}, que não pode tê-lo escrito: pidfile "
        "velho ou de outro contêiner; use --pid ou --match",
        "PID {pid} of {path} is {command} here, which cannot have written it: a stale "
        "pidfile or another container's; use --pid or --match",
    ),
    "start_within_idle": (
        "--start-within só vale com --match, --regex ou --pidfile; retire-o",
        "--start-within goes only with --match, --regex or --pidfile; drop it",
    ),
    "no_message": (
        'a mensagem está vazia; use: notify-release "texto"',
        'the message is empty; use: notify-release "text"',
    ),
    "config_file": (
        "{path}: {error}; corrija o arquivo",
        "{path}: {error}; mend the file",
    ),
    "config_value": (
        "{name} {value} não vale: {error}",
        "{name} {value} will not do: {error}",
    ),
    "unknown_key": (
        "chave desconhecida {name}; conhecidas: {known}",
        "unknown key {name}; known: {known}",
    ),
    "url_scheme": (
        "use http:// ou https:// com um host e sem senha no endereço",
        "use http:// or https:// with a host and no password in the address",
    ),
    "one_of": ("use {choices}", "use {choices}"),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence by its key, with its values, not yet in any language."""

    key: str
    values: "dict[str, str | int | Phrase]" = field(default_factory=dict)

    def render(self, lang: Lang) -> str:
        """Return the sentence with every foreign value cleaned and kept short."""
        template = TEXTS[self.key][0 if lang is Lang.PT else 1]
        return template.format_map(
            {
                name: value.render(lang)
                if isinstance(value, Phrase)
                else clean(str(value), _VALUE_LIMIT)
                for name, value in self.values.items()
            }
        )


def phrase(key: str, **values: str | int | Phrase) -> Phrase:
    """Return a `Phrase`; a key that no text has is a `KeyError` at once.

    Raises:
        KeyError: for an unknown key.
    """
    if key not in TEXTS:
        raise KeyError(key)
    return Phrase(key, values)
