//! The shop: a world where everything hangs on a handle that is told once.

use std::sync::{Arc, Mutex};

use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox, ToolboxBuilder};
use retrace_events::{Event, Part, Recording, Request};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::draws::Draws;
use crate::shopkeeper::{Shopkeeper, session_in};
use crate::world::{RecordError, World, record};

const NAMES: [&str; 24] = [
    "tea", "coffee", "milk", "sugar", "flour", "rice", "salt", "pepper", "honey", "jam", "oats", "beans", "lentils",
    "pasta", "oil", "vinegar", "soap", "candles", "matches", "paper", "ink", "string", "needles", "thread",
];

/// A shop with pages of items, a stock, orders and sessions.
///
/// | tool | arguments | answers |
/// |---|---|---|
/// | `login` | – | the id of a new session, another one each time |
/// | `list_items` | `session`, `page` | the items of a page |
/// | `check_stock` | `session`, `item` | stock, shelf space and open order of an item, and what comes next |
/// | `reorder` | `session`, `item`, `quantity` | the open order, and what comes next |
///
/// A call without a session of this shop fails; so does one for a page or an item that is not there, and an order of
/// nothing or of more than the shelf holds. What was ordered is not delivered before the round is over.
///
/// Every answer about an item names the next one, or the next page, so the session is all that a keeper must remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shop {
    items: Vec<Item>,
    page_len: usize,
    /// What the ids of the sessions are made from.
    first_session: u64,
    n_sessions: u64,
}

/// An item of a shop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// Its name: small letters, digits and hyphens.
    pub name: String,
    /// How many are there.
    pub in_stock: u32,
    /// How many there should be; no more fit on the shelf.
    pub wanted: u32,
    /// How many are ordered.
    pub on_order: u32,
}

/// Why the shop refuses a call.
#[derive(Debug, thiserror::Error)]
enum ShopRefusal {
    #[error("`{session}` is no session of this shop")]
    UnknownSession { session: String },
    #[error("there is no page {page}, the last one is {n_pages}")]
    UnknownPage { page: u64, n_pages: usize },
    #[error("there is no item `{item}`")]
    UnknownItem { item: String },
    #[error("an order needs a quantity")]
    NothingOrdered,
    #[error("there is room for {room} more: ordered {on_order} of {item}")]
    ShelfFull { room: u32, on_order: u32, item: String },
}

#[derive(Deserialize, JsonSchema)]
struct ListItems {
    /// The id that `login` gave.
    session: String,
    /// Which page, from 1.
    page: u64,
}

#[derive(Deserialize, JsonSchema)]
struct CheckStock {
    /// The id that `login` gave.
    session: String,
    /// The name of the item.
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct Reorder {
    /// The id that `login` gave.
    session: String,
    /// The name of the item.
    item: String,
    /// How many to order.
    quantity: u32,
}

impl Shop {
    /// A shop of five pages with three items each.
    pub fn new(seed: u64) -> Self {
        Self::with_pages(seed, 5, 3)
    }

    /// A shop of so many pages, at least one, with so many items each, at least one. About every second item is low.
    pub fn with_pages(seed: u64, n_pages: usize, page_len: usize) -> Self {
        let (n_pages, page_len) = (n_pages.max(1), page_len.max(1));
        let mut draws = Draws::new(seed);
        let mut names = NAMES;
        draws.shuffle(&mut names);
        let items = (0..n_pages * page_len).map(|index| {
            let name = names[index % NAMES.len()];
            let name =
                if index < NAMES.len() { name.to_owned() } else { format!("{name}-{}", index / NAMES.len() + 1) };
            let wanted = 10 + 5 * small(&mut draws, 4);
            let in_stock = if draws.chance(0.5) { small(&mut draws, wanted) } else { wanted };
            Item { name, in_stock, wanted, on_order: 0 }
        });
        let items = items.collect();
        Self { items, page_len, first_session: draws.any() % N_SESSIONS, n_sessions: 0 }
    }

    /// Its items, in the order of its pages.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// How many pages they fill.
    pub fn n_pages(&self) -> usize {
        self.items.len().div_ceil(self.page_len)
    }

    /// How many sessions were opened.
    pub fn n_sessions(&self) -> u64 {
        self.n_sessions
    }

    /// Whether nothing is left to order.
    pub fn is_stocked(&self) -> bool {
        self.items.iter().all(|item| item.in_stock + item.on_order >= item.wanted)
    }

    /// The agent of the demonstration: now and then it does something else, and its summaries leave things out.
    pub fn demo_agent() -> Shopkeeper {
        Shopkeeper::new().temperature(0.05).summary_loss(0.1)
    }

    /// Three runs of the [agent of the demonstration](Self::demo_agent) in one shop, of 20 to 26 actions each; runs
    /// that ended earlier are passed over.
    ///
    /// A window of the last four events has lost the login at every boundary after three actions or more.
    ///
    /// # Errors
    /// Those of [`record`].
    pub async fn demo_recordings(seed: u64) -> Result<Vec<Recording>, RecordError> {
        let (shop, agent) = (Self::new(seed), Self::demo_agent());
        let mut draws = Draws::new(seed);
        let mut recordings = Vec::new();
        while recordings.len() < 3 {
            let id = format!("shop-{}", recordings.len() + 1);
            let recording = record(&shop, id, &agent, 26, draws.any()).await?;
            let n_calls: usize = recording.events.iter().map(|event| event.tool_calls().count()).sum();
            if n_calls >= 20 {
                recordings.push(recording);
            }
        }
        Ok(recordings)
    }

    /// The environment of the [recordings of the demonstration](Self::demo_recordings).
    pub fn demo_environment(seed: u64) -> ReplayEnvironment {
        Self::new(seed).environment()
    }

    /// The recording with a pinned note of the session right after the login that gave it, as a harness might keep
    /// one. No strategy drops it.
    pub fn with_pinned_session(recording: &Recording) -> Recording {
        let mut noted = false;
        let events = recording.events.iter().flat_map(|event| {
            let session = match &**event {
                Event::ToolResults(round) if !noted => {
                    round.results.iter().find_map(|result| session_in(&result.text()))
                }
                _ => None,
            };
            noted |= session.is_some();
            let note = session.map(|session| {
                let content = [Part::text(format!("Remember: session {session}")).pinned()].into();
                Arc::new(Event::Request(Request { content, ..Request::default() }))
            });
            std::iter::once(Arc::clone(event)).chain(note)
        });
        Recording { header: recording.header.clone(), events: events.collect() }
    }

    fn login(&mut self) -> String {
        let session = self.session(self.n_sessions);
        self.n_sessions += 1;
        format!("session {session}")
    }

    fn list_items(&self, page: u64) -> Result<String, ShopRefusal> {
        let n_pages = self.n_pages();
        let refusal = ShopRefusal::UnknownPage { page, n_pages };
        let page = usize::try_from(page).ok().filter(|page| (1..=n_pages).contains(page)).ok_or(refusal)?;
        let items = self.items.chunks(self.page_len).nth(page - 1).unwrap_or_default();
        let names: Vec<_> = items.iter().map(|item| &*item.name).collect();
        Ok(format!("page {page} of {n_pages}: {}", names.join(", ")))
    }

    fn check_stock(&self, item: &str) -> Result<String, ShopRefusal> {
        let index = self.index(item)?;
        let Item { name, in_stock, wanted, on_order } = &self.items[index];
        let order = if *on_order > 0 { format!("; ordered {on_order} of {name}") } else { String::new() };
        Ok(format!("item {name}: {in_stock} in stock, {wanted} wanted{order}; {}", self.after(index)))
    }

    fn reorder(&mut self, item: &str, quantity: u32) -> Result<String, ShopRefusal> {
        let index = self.index(item)?;
        let Item { name, in_stock, wanted, on_order } = &mut self.items[index];
        let room = wanted.saturating_sub(*in_stock + *on_order);
        if quantity == 0 {
            return Err(ShopRefusal::NothingOrdered);
        }
        if quantity > room {
            return Err(ShopRefusal::ShelfFull { room, on_order: *on_order, item: name.clone() });
        }
        *on_order += quantity;
        let order = format!("ordered {on_order} of {name}");
        Ok(format!("{order}; {}", self.after(index)))
    }

    fn index(&self, item: &str) -> Result<usize, ShopRefusal> {
        let found = self.items.iter().position(|known| known.name == item);
        found.ok_or_else(|| ShopRefusal::UnknownItem { item: item.to_owned() })
    }

    /// What comes after an item.
    fn after(&self, index: usize) -> String {
        match self.items.get(index + 1) {
            None => "no more items".to_owned(),
            Some(_) if (index + 1).is_multiple_of(self.page_len) => format!("next page {}", index / self.page_len + 2),
            Some(item) => format!("next item {}", item.name),
        }
    }

    fn session(&self, number: u64) -> String {
        // The step shares no factor with their number, so all of them come before one comes again.
        format!("s-{}", 1000 + (self.first_session + number * 7919) % N_SESSIONS)
    }

    fn open(&self, session: String) -> Result<(), ShopRefusal> {
        let is_open = (0..self.n_sessions.min(N_SESSIONS)).any(|number| self.session(number) == session);
        if is_open { Ok(()) } else { Err(ShopRefusal::UnknownSession { session }) }
    }
}

/// How many ids of sessions there are.
const N_SESSIONS: u64 = 9000;

fn small(draws: &mut Draws, n: u32) -> u32 {
    u32::try_from(draws.below(n as usize)).unwrap_or(u32::MAX)
}

impl World for Shop {
    fn tools(world: &Arc<Mutex<Self>>) -> ToolboxBuilder {
        Toolbox::builder()
            .tool(FnTool::on(world, "login", "Opens a session.", |shop: &mut Self, _: NoArguments| shop.login()))
            .tool(FnTool::on(world, "list_items", "Lists the items of a page.", |shop: &mut Self, call: ListItems| {
                shop.open(call.session)?;
                shop.list_items(call.page)
            }))
            .tool(FnTool::on(
                world,
                "check_stock",
                "Tells the stock of an item.",
                |shop: &mut Self, call: CheckStock| {
                    shop.open(call.session)?;
                    shop.check_stock(&call.item)
                },
            ))
            .tool(FnTool::on(world, "reorder", "Orders an item.", |shop: &mut Self, call: Reorder| {
                shop.open(call.session)?;
                shop.reorder(&call.item, call.quantity)
            }))
    }

    fn instructions(&self) -> String {
        "You keep a shop. When asked for the stock round, log in, go through all pages, check every item, and reorder \
         what is missing. Every other tool needs the session that login gives."
            .to_owned()
    }

    fn request(&self) -> String {
        "Please do the stock round.".to_owned()
    }
}
